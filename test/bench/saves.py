"""Saves many small files the way editors do: under another name, then renamed into place.

Arguments: the folder, how many, the least and the most bytes, a word that stands at the head of each file.
Prints the milliseconds that all of them took.
"""
import os
import sys
import time

folder, count, least, most, word = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
os.makedirs(folder, exist_ok=True)
noise = os.urandom(most)
start = time.monotonic()
for number in range(count):
    size = least + (number * 7919) % (most - least + 1)
    head = f'{word} {number}\n'.encode()
    name = os.path.join(folder, f'file {number:05}.dat')
    with open(name + '.tmp', 'wb') as file:
        file.write((head + noise)[:size])
    os.rename(name + '.tmp', name)
print((time.monotonic() - start) * 1000)
