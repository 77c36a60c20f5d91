// Tries: a system call by another ABI: x32 numbers, and int 0x80 with the numbers of i386.
// Origin: seccomp(2): check the architecture.
// machine: x86_64

const found = [];
const path = native.address(input.write);
const memory = native.call("mmap", 0, 4096, 7, 0x62, -1, 0);
found.push(memory > 0);
// push rbx; mov eax, 8 (creat); mov ebx, edi; mov ecx, 0666; int 0x80; pop rbx; ret
const code = [0x53, 0xb8, 8, 0, 0, 0, 0x89, 0xfb, 0xb9, 0xb6, 1, 0, 0, 0xcd, 0x80, 0x5b, 0xc3];
const text = new TextEncoder().encode(input.write + "\0");
const bytes = new Uint8Array(Deno.UnsafePointerView.getArrayBuffer(Deno.UnsafePointer.create(BigInt(memory)), 4096));
bytes.set(code, 0);
bytes.set(text, 256);
found.push(String(native.execute(memory, ["i64"], BigInt(memory + 256))));
found.push(typeof path);
return found;
