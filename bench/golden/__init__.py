"""A server whose truth is known: it sends what a script says and records when it sent it (standard library only)."""
