"""The tools that the measured agents may call, and the sandbox that their code runs in.

Plain functions without AutoGen: :mod:`eval_pipeline.agents` wraps them. What a benchmark scores, and how an
agent is told about a tool, belong elsewhere.
"""
