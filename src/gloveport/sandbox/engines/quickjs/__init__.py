"""QuickJS: JavaScript with little of the platform, for density."""
