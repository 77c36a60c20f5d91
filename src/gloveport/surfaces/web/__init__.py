"""The web pages: static files that use `/v1` alone, and how a person signs in to them.

`pages` serves the built files · `views` are the addresses of the pages, and of what each shows as JSON · `sessions` knows
who has signed in · `links` are how `gloveport open` asks a running server for a link. The sources of the pages are in
`web/` of the repository; `make setup` builds them into `static/`.
"""
