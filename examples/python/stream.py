"""Streams a prompt and shows the answer and the tool calls as they come."""

from a3s_code import Agent, EventType

with Agent.create("agent.acl") as agent, agent.session("workspace") as session:
    for event in session.stream("What does hello.py print?"):
        if event.type == EventType.TEXT_DELTA:
            print(event.text, end="", flush=True)
        elif event.type == EventType.TOOL_START:
            print(f"\n→ {event.tool_name}")
        elif event.type == EventType.AGENT_END:
            print()
        elif event.type == EventType.ERROR:
            raise SystemExit(event.error)
