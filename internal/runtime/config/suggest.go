package config

import "strings"

// nearest is the candidate that name was probably meant to be, or empty.
func nearest(name string, candidates []string) string {
	best, distance := "", 1+max(1, min(3, len(name)/3))
	for _, c := range candidates {
		if d := editDistance(squash(name), squash(c)); d < distance {
			best, distance = c, d
		}
	}
	return best
}

// squash makes max_payload_bytes and maxPayloadBytes the same.
func squash(name string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(strings.ToLower(name))
}

// editDistance counts the bytes inserted, deleted, replaced, or swapped with
// their neighbour. Texts of very different length are far apart without counting.
func editDistance(a, b string) int {
	if n := len(a) - len(b); n > 4 || n < -4 {
		return 5
	}
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
