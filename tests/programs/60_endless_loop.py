total = 0
page = 1
while True: total += page
