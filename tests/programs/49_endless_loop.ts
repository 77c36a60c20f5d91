let page = 0;
const seen = [];
while (seen.length < 10) {
  page += 1;
}
return seen;
