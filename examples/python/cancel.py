"""Stops a run that takes too long."""

from a3s_code import Agent, EventType

with Agent.create("agent.acl") as agent, agent.session("workspace") as session:
    for event in session.stream("Count to a million."):
        if event.type == EventType.TEXT_DELTA:
            print(event.text)
            session.cancel()  # read on: a run always ends with one terminal event
        elif event.type == EventType.ERROR:
            print("error:", event.payload["code"])
    print("run:", session.runs()[0]["status"])
