"""Keeps a session in a store of the program's own: a map in memory."""

from a3s_code import Agent, SessionOptions


class MapStore:
    """For each session the latest snapshot, its generation, and the facts that follow it."""

    def __init__(self):
        self.kept = {}

    def load(self, id, start, limit):
        if id not in self.kept:
            return None
        found = self.kept[id]
        return {**found, "facts": found["facts"][start : start + limit], "count": len(found["facts"])}

    def append(self, id, generation, start, facts):
        found = self.kept.setdefault(id, {"generation": generation, "facts": []})
        found["facts"][start:] = facts

    def save(self, id, generation, snapshot):
        self.kept[id] = {"generation": generation, "snapshot": snapshot, "facts": []}

    def delete(self, id):
        self.kept.pop(id, None)

    def list(self):
        return list(self.kept)


store = MapStore()
options = SessionOptions()
options.session_id = "notebook"
with Agent.create("agent.acl") as agent:
    options.session_store = agent.register_session_store("map", store)
    with agent.session("workspace", options) as session:
        session.send("The door code is 1234.")
        session.save()
    for id in store.list():
        print("kept:", id)
    with agent.resume_session("notebook", options) as session:
        for message in session.history():
            print(f"{message['role']}:", *(block["text"] for block in message["content"] if block["type"] == "text"))
