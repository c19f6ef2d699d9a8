"""Goes on with a conversation that another agent had: it is kept in files."""

from a3s_code import Agent, FileSessionStore, SessionOptions

options = SessionOptions()
options.session_id = "diary"
options.session_store = FileSessionStore("sessions")

with Agent.create("agent.acl") as agent, agent.session("workspace", options) as session:
    session.send("Today we measured.")  # closed without a save: the journal keeps what was said

with Agent.create("agent.acl") as agent, agent.resume_session("diary", options) as session:
    session.send("Tomorrow we cut.")
    for message in session.history():
        print(f"{message['role']}:", *(block["text"] for block in message["content"] if block["type"] == "text"))
