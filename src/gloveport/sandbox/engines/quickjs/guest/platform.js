// QuickJS does no background work: when its microtasks are done, the guest is quiet.

export function platformBusy() {
  return false;
}

export function deliverWork() {
  return false;
}
