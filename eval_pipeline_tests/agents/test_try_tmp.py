import asyncio
import pytest
from eval_pipeline_tests.agents.scenes import *
from eval_pipeline_tests.stub_openai import *
async def test_try(database):
    scenes=[Scene("good"), Scene("long", route=LONG), Scene("e500", {"planner":[error(500)]}), Scene("e429", {"planner":[error(429), error(429), GOOD]}),
      Scene("sel500", {"selector":[error(500)]}), Scene("crit", {"critic":[text("I cannot APPROVE this."), GOOD]}, route=["planner","critic","planner","critic"])]
    for stream in (False, True):
        p = await play(database, scenes, llm_stream=stream, key=f"b{stream}@v1-baseline")
        for t,r in p.runs.items():
            print(stream, t, r.status, r.terminated_by, r.error_class, r.success, r.error_message)
            print("   ", trace_line(p.events[t]))
            print("   ", [(c.role,c.outcome,c.http_status,c.finish_reason,c.error_class,c.prompt_tokens,c.completion_tokens,c.attempt) for c in p.calls[t]])
            print(p.sent_usage(t), (r.all_tokens_in, r.all_tokens_out, r.tokens_in, r.tokens_out))
        print(p.leftover_tasks, p.complaints)
