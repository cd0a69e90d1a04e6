"""A trial in virtual time: the same plan, schedule, records and judgement, against an engine in this process."""
