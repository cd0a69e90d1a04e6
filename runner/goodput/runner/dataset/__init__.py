"""Workloads from files: ShareGPT conversations, JSON lines, Azure LLM traces."""
