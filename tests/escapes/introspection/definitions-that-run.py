# Tries: code that runs when a definition is made, before anything is called: decorators, defaults, annotations, bases,
# metaclasses.
# Origin: the shape of CVE-2025-3248 (Langflow: a validator that executed decorators and defaults).

found = []


@(lambda made: found.append(open(input["file"]).read()))
def first(): ...


def second(given=found.append(open(input["file"]).read())): ...


class Third(*[found.append(open(input["file"]).read())][1:], metaclass=lambda *_: found.append("made")):
    note: found.append(open(input["file"]).read())


found
