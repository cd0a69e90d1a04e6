"""Damaged streams through the real hot loop and the real parser, judged by an independent reading."""
