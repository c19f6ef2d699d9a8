import a3s_code
from a3s_code import Agent, EventType

with Agent.create("agent.acl") as agent, agent.session("workspace") as session:
    print(a3s_code.__version__, end=" ")
    for event in session.stream("where is the needle?"):
        if event.type == EventType.TOOL_START:
            print(event.tool_name, end=": ")
        elif event.type == EventType.AGENT_END:
            print(event.text)
