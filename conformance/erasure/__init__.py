"""What erasing types makes of TypeScript that people wrote, beside what esbuild makes of it."""
