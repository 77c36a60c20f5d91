# Tries: text in an annotation, which is evaluated by who asks for the types.
# Origin: typing.get_type_hints and inspect.signature(eval_str=True) on untrusted classes.

import inspect, typing


class Row:
    size: "[open(input['file']).read()]"


def price(amount: "[open(input['file']).read()]"): ...


found = []
for look in (lambda: typing.get_type_hints(Row), lambda: inspect.signature(price, eval_str=True), lambda: inspect.get_annotations(Row, eval_str=True)):
    try:
        found.append(str(look()))
    except Exception as error:
        found.append(str(error))
found
