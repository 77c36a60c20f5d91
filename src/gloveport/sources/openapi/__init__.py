"""APIs that an OpenAPI document, a Swagger 2.0 document or a Google discovery document describes.

opening          opens a definition as a source: loads it, then has it compiled unless the cache has the result
loading          loads the bytes: a download, or a file and the files beside it
compile/         document → operations with their schemas; a task in a jailed process
frames           what the compiler and the host send each other
frame_check      checks what the compiler sends, as untrusted data
fingerprints     a digest for each tool that changes when its definition does
operation        the compiled operation, which the cache stores
source           the source: its operations are tools, and a call is a request
call/            arguments → request → reply → next page
method_override  recognises parameters that ask a service for another method than the request's own
"""
