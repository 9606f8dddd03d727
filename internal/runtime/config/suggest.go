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

// editDistance counts insertions, deletions and replacements of bytes. Texts of
// very different length are far apart without counting.
func editDistance(a, b string) int {
	if n := len(a) - len(b); n > 4 || n < -4 {
		return 5
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
