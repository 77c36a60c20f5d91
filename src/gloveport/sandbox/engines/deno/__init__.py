"""Deno: TypeScript and JavaScript with the platform of a browser."""
