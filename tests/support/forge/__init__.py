"""A forge on loopback that behaves as GitHub does, down to what it does badly.

REST is checked both ways by GitHub's OpenAPI description, GraphQL by GitHub's schema; git is
served by the real `git http-backend` from a real repository, in which pull requests land by real
merges. `fixtures.py` has the fixtures.

    repo = forge.repo("acme/engine", {"engine.py": b"speed = 1\\n"})
    knob = repo.pull("Add a knob").write("knob.py", b"KNOB = 2\\n")
    knob.lands_by_squash()
    repo.tag("v1.0")
"""
