"""APIs that an OpenAPI document, a Swagger 2.0 document or a Google discovery document describes.

opening          opens a definition as a source: loads it, then compiles it unless the cache has the result
loading          loads the bytes: a download, or a file and the files beside it
compile/         document → operations with their schemas; does no I/O
operation        the compiled operation, which the cache stores
source           the source: its operations are tools, and a call is a request
call/            arguments → request → reply → next page
method_override  recognises parameters that ask a service for another method than the request's own
"""
