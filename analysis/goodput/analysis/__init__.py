"""What is stored and how it is judged: documents, object storage, metrics, statistics, tables, report.

The lowest layer: the runner writes these documents, the operator plans with their ids.
"""
