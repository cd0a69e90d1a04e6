"""What measures: one trial against one server: load, scraping, warm-up, validity, records, commits."""
