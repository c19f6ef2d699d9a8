"""Brings its own model: a function that gets the conversation and answers in pieces."""

from a3s_code import Agent, EventType


def oracle(request):
    for block in request["messages"][-1]["content"]:
        if block["type"] == "tool_result":
            yield "The motto is:\n"
            yield block["content"]
            return
    yield "Let me "
    yield "look."
    yield {"tool_call": {"id": "call-1", "name": "read", "arguments": {"file_path": "motto.txt"}}}


with Agent.create("agent.acl") as agent:
    agent.register_model("oracle", oracle)
    with agent.session("workspace") as session:
        for event in session.stream("What is the motto?"):
            if event.type == EventType.TEXT_DELTA:
                print(event.text, end="", flush=True)
            elif event.type == EventType.TOOL_START:
                print(f"\n→ {event.tool_name}")
            elif event.type == EventType.AGENT_END:
                print()
            elif event.type == EventType.ERROR:
                raise SystemExit(event.error)
