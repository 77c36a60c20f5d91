total = 0
for page in range(1, 4):
    total += page
total
