// What is connected here, and what can be called
const sources = await tools.sources();
const found = await tools.search("list");
console.log(`${sources.length} sources`);
({ sources, found });
