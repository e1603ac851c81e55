#!/usr/bin/env python3
"""Writes FASTQ reads of a random genome, with errors, to standard output; the same each time.

    bench/kmers/make_reads.py --reads 400000 --letters 150 --genome 4000000 --errors 0.005 > reads.fq
"""
import argparse
import random
import sys

COMPLEMENT = str.maketrans("ACGT", "TGCA")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reads", type=int, default=400_000)
    parser.add_argument("--letters", type=int, default=150, help="of each read")
    parser.add_argument("--genome", type=int, default=4_000_000, help="letters of the genome")
    parser.add_argument("--errors", type=float, default=0.005, help="wrong letters of each letter")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    genome = "".join(chance.choices("ACGT", k=options.genome))
    quality = "I" * options.letters
    for number in range(options.reads):
        begin = chance.randrange(options.genome - options.letters + 1)
        read = genome[begin:begin + options.letters]
        if chance.random() < 0.5:  # the other strand
            read = read.translate(COMPLEMENT)[::-1]
        # The distance to the next error is distributed as between independent ones.
        at = int(chance.expovariate(options.errors)) if options.errors > 0 else options.letters
        while at < options.letters:
            wrong = chance.choice("ACGT".replace(read[at], ""))
            read = read[:at] + wrong + read[at + 1:]
            at += 1 + int(chance.expovariate(options.errors))
        sys.stdout.write(f"@r{number}\n{read}\n+\n{quality}\n")


if __name__ == "__main__":
    main()
