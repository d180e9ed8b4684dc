"""The same work in Inspect: samples of six turns of a model without latency, two of which call a tool.

Run by an interpreter that has ``inspect-ai``: ``overhead.py SAMPLES LATENCY_S CONCURRENCY LOG_DIR``. It prints one line
of JSON: seconds of wall and CPU, and the peak of memory. The model is Inspect's own mock, the log its default format.
"""

# ruff: noqa: E402 - the clock starts before the imports
from __future__ import annotations

import asyncio
import json
import resource
import sys
import time

BEGUN_S = time.monotonic()

from inspect_ai import Task, task
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage, execute_tools, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import Tool, tool

MODEL = "mockllm/model"
PLAN = "Plan: compute 17 * 23 with python_calc, then check the product by division.\nExecutor: python_calc 17 * 23."
TURNS = ("plan", "call", "review", "call", "answer", "approve")


@tool
def python_calc() -> Tool:
    async def execute(expression: str) -> str:
        """Calculate one arithmetic expression.

        Args:
            expression: What to calculate.
        """
        left, operator, right = expression.split()
        return str(int(left) * int(right) if operator == "*" else int(left) // int(right))

    return execute


def output(turn: int) -> ModelOutput:
    match TURNS[turn]:
        case "call":
            return ModelOutput.for_tool_call(
                MODEL, "python_calc", {"expression": "17 * 23" if turn == 1 else "391 / 23"}
            )
        case "answer":
            return ModelOutput.from_content(MODEL, "The product is checked.\nFINAL ANSWER: 391")
        case "approve":
            return ModelOutput.from_content(MODEL, "APPROVE")
        case _:
            return ModelOutput.from_content(MODEL, PLAN)


def main() -> None:
    samples, latency_s, concurrency, log_dir = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]

    async def reply(messages: list[ChatMessage], *_: object) -> ModelOutput:
        if latency_s:
            await asyncio.sleep(latency_s)
        said = output(sum(message.role == "assistant" for message in messages))
        # without it Inspect counts tokens with an encoding that it fetches from the network
        said.usage = ModelUsage(input_tokens=500, output_tokens=50, total_tokens=550)
        return said

    @solver
    def six_turns() -> Solver:
        async def solve(state: TaskState, generate: Generate) -> TaskState:
            state.tools = [python_calc()]
            for _ in TURNS:
                state = await generate(state, tool_calls="none")
                if state.output.message.tool_calls:
                    state.messages += (await execute_tools(state.messages, state.tools)).messages
            return state

        return solve

    @task
    def overhead() -> Task:
        dataset = MemoryDataset(
            [Sample(id=number, input=f"What is 17 times 23? ({number})", target="391") for number in range(samples)]
        )
        return Task(dataset=dataset, solver=six_turns(), scorer=match())

    begun_s, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF)
    logs = inspect_eval(
        overhead(),
        model=get_model(MODEL, custom_outputs=reply),
        max_connections=10 * concurrency,
        max_samples=concurrency,
        log_dir=log_dir,
        display="none",
        log_level="error",
    )
    after = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps(
            {
                "status": logs[0].status,
                "samples": len(logs[0].samples or []),
                "wall_s": time.monotonic() - begun_s,
                "start_s": begun_s - BEGUN_S,
                "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
                "start_cpu_s": before.ru_utime + before.ru_stime,
                "peak_mb": after.ru_maxrss / 1024,
            }
        )
    )


if __name__ == "__main__":
    main()
