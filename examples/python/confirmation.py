"""Is asked before a tool runs, and decides by the arguments of the call."""

from a3s_code import Agent, ConfirmationPolicy, EventType, PermissionPolicy, SessionOptions

options = SessionOptions()
options.permission_policy = PermissionPolicy(default_decision="ask")
options.confirmation_policy = ConfirmationPolicy(enabled=True)

with Agent.create("agent.acl") as agent, agent.session("workspace", options) as session:
    for event in session.stream("Write the plan and the settings."):
        if event.type == EventType.CONFIRMATION_REQUIRED:
            path = event.payload["args"]["file_path"]
            print(f"? {event.tool_name} {path}")
            if path.startswith("docs/"):
                print("yes")
                session.confirm_tool_use(event.tool_id, True)
            else:
                print("no: only docs/ may change")
                session.confirm_tool_use(event.tool_id, False, "only docs/ may change")  # the model sees the reason
        elif event.type == EventType.TOOL_END:
            print(f"{event.tool_name}: exit code {event.exit_code}")
        elif event.type == EventType.AGENT_END:
            print(event.text)
        elif event.type == EventType.ERROR:
            raise SystemExit(event.error)
