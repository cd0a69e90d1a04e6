"""Profiles from measurements: kernel tables, or the cells of a sweep (needs numpy and scipy)."""
