# Tries: attributes read by patterns of a match statement, so that no scanner sees one being read.
# Origin: pyjail collections; S22.

found = None
match print:
    case object(__self__=object(__dict__=names)):
        found = names["open"](input["file"])
match found:
    case object(read=read):
        found = read()
found
