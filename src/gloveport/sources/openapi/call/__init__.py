"""Call an operation: arguments → request → reply → value, and the next page.

base_url       the server that requests go to
credentials    the secrets that a request carries
request        builds the request from the arguments
styles         writes parameter values as text
body_encoding  writes a request body as bytes
retries        sends the request, and repeats it after a transient failure
response       reads the reply as a value or an error
paging         finds the next page, and seals the cursor that leads to it
"""
