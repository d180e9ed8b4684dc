"""Evaluates teams of LLM agents: every (task, attempt) is traced, scored and resumable.

Nothing is imported here, so that the command line starts fast and that using one room never pulls in another.
"""
