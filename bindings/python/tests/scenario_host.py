"""The host's side of a play: the extensions of host.json and the tools of host_tools.json, what they
answer, and how often they were asked."""

from __future__ import annotations

import json
import threading
from typing import Any, Callable, cast

from a3s_code import Agent, Context, ExtensionError, Session, ToolContext, ToolResult, _ffi
from a3s_code._desk import Desk
from a3s_code._extensions import KINDS

from scenario import PATIENCE, Json

OPERATIONS = {kind: [op for op in table.ops if " " not in op] for kind, table in KINDS.items()} | {"tool": ["call"]}
NO_ANSWER = {"error": {"type": "Error", "message": "no answer"}}


class Host:
    """What serves one agent of a play."""

    def __init__(self, tools: list[Json], extensions: list[Json], does: Callable[[str], None]) -> None:
        self.tools, self.extensions, self.does = tools, extensions, does
        self.calls: dict[tuple[str, str, str], int] = {}
        self.busy = 0
        self.wrong: list[BaseException] = []
        self.moved = threading.Condition()
        self.desk: Desk

    def serve(self, agent: Agent) -> None:
        """Registers what belongs to an agent."""
        self.desk = agent._desk
        for spec in self.tools:
            self._tool(agent, spec)
        self._register(agent, "agent")

    def serve_session(self, session: Session) -> None:
        """Registers what belongs to a session."""
        self._register(session, "session")

    def settle(self) -> None:
        """Waits until all was asked that must be, and all handlers are done."""
        with self.moved:
            self.moved.wait_for(lambda: not self.busy and not self._odd(lambda got, want: got < want), PATIENCE)

    def check(self) -> None:
        """Holds that nothing went wrong, and that everything was asked as often as it must be."""
        odd = self._odd(lambda got, want: got != want)
        assert not odd, odd
        if self.wrong:
            raise self.wrong[0]

    def _odd(self, differs: Callable[[int, int], bool]) -> list[str]:
        wanted = [("tool", s["name"], "call", s["calls"]) for s in self.tools if "calls" in s]
        wanted += [(x["kind"], x["spec"]["name"], op, n) for x in self.extensions for op, n in x.get("calls", {}).items()]
        return [f"{k} {n}: asked {self.calls.get((k, n, op), 0)} times for {op}, want {want}"
                for k, n, op, want in wanted if differs(self.calls.get((k, n, op), 0), want)]

    def _tool(self, agent: Agent, spec: Json) -> None:
        answer = spec["answer"]

        def tool(text: str, context: ToolContext) -> Any:
            chunks = [{"delta": chunk} for chunk in answer.get("chunks", [])]
            return self._answer(context, {**answer, "chunks": chunks}, {"output": answer.get("output", text)}, lambda a: _tool_result(a, text))

        agent.register_tool(tool, name=spec["name"], description=spec["description"], read_only=spec.get("read_only", False), timeout_ms=spec.get("timeout_ms"))

    def _register(self, owner: Agent | Session, on: str) -> None:
        for x in self.extensions:
            if x.get("on", "agent") == on:
                answers = {**dict.fromkeys(OPERATIONS.get(x["kind"], ()), []), **x.get("answers", {})}
                owner.register_extension(x["kind"], x["spec"], {op: self._handler(found) for op, found in answers.items()})

    def _handler(self, answers: list[Json]) -> Callable[[Any, Context], Any]:
        def handler(params: Any, context: Context) -> Any:
            number = self.calls.get((context.kind, context.name, context.op), 0)
            answer = answers[min(number, len(answers) - 1)] if answers else NO_ANSWER
            return self._answer(context, answer, large(answer.get("result")), lambda a: large(a.get("result")))

        return handler

    def _answer(self, context: Context, answer: Json, raw: Json, result: Callable[[Json], Any]) -> Any:
        """Counts a request and does what the answer to it says."""
        key = context.kind, context.name, context.op
        with self.moved:
            self.calls[key] = self.calls.get(key, 0) + 1
            self.busy += 1
        try:
            self._play(context, answer, raw)
        except BaseException as err:
            self.wrong.append(err)
            raise
        finally:
            with self.moved:
                self.busy -= 1
                self.moved.notify_all()
        if "error" in answer:
            said = dict(large(answer["error"]))
            raise type(said.pop("type"), (ExtensionError,), {})(said.pop("message"), **said)
        return result(answer)

    def _play(self, context: Context, answer: Json, raw: Json) -> None:
        for line in answer.get("does", []):
            self.does(line)
        for chunk in answer.get("chunks", []):
            context.chunk(large(chunk))
        if answer.get("wait"):
            assert context._cancelled.wait(PATIENCE), f"{context.name}: nobody withdrew it"
            assert context.reason == answer.get("withdrawn", context.reason) != "", f"{context.name}: withdrawn because {context.reason!r}"
            assert not self._reply(context, raw), "a late answer counted"
        if answer.get("dies"):
            _ffi.close(self.desk._stream, 5000)
            assert context._cancelled.wait(PATIENCE), "the control stream is closed and still read"
        if answer.get("twice"):  # a function answers once, so this goes around it
            assert self._reply(context, raw), "the answer did not count"
            assert not self._reply(context, raw), "a second answer counted"

    def _reply(self, context: Context, raw: Json) -> bool:
        return _ffi.host_reply(self.desk.agent, context._request, json.dumps({"result": raw}).encode())


def _tool_result(answer: Json, text: str) -> Any:
    if answer.get("garbage"):
        return ToolResult(output=cast(Any, 5))
    output = answer.get("output", text)
    if "exit_code" in answer or "metadata" in answer:
        return ToolResult(output=output, exit_code=answer.get("exit_code", 0), metadata=answer.get("metadata"))
    return output


def large(value: Json) -> Json:
    """Puts the texts in place that {"$big": N} stands for."""
    if isinstance(value, dict):
        return "x" * value["$big"] if set(value) == {"$big"} else {k: large(v) for k, v in value.items()}
    return [large(v) for v in value] if isinstance(value, list) else value
