// Integers that collide in a Python dict of 2^17 slots: each new one meets occupied slots until its hash is used up, then walks
// to the end of the run of occupied slots along the cycle that probing follows from there.
function colliding(total) {
  const mask = 2 ** 17 - 1, place = new Int32Array(mask + 1).fill(-1), numbers = [];
  const run = Math.min(total, Math.floor(mask / 3)); // the last number of slots before the dict grows to 2^17
  for (let slot = 0; numbers.length < run; slot = (slot * 5 + 1) & mask) {
    place[slot] = numbers.length;
    numbers.push(slot);
  }
  for (let number = mask + 1; numbers.length < total; number++) {
    let slot = number & mask, rest = number;
    while (rest && place[slot] >= 0) {
      rest >>>= 5;
      slot = (slot * 5 + 1 + rest) & mask;
    }
    if (!rest && place[slot] >= 0 && place[slot] < run / 2) numbers.push(number);
  }
  return numbers;
}
