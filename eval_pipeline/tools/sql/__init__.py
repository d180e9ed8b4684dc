"""Runs queries that a model wrote: in a child process that can only read, within limits.

Which result is right belongs to :mod:`eval_pipeline.benchmarks.sql`.
"""
