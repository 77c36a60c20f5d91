"""Compare our type erasure with esbuild's on published TypeScript."""
