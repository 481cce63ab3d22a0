package einmaltest

import (
	"slices"
	"strings"
)

// around is how many lines are shown on either side of a difference.
const around = 3

// difference shows which lines are in one text only: those of was with a -, those of is with a +.
func difference(was, is []string) string {
	common := commonLines(was, is)
	var all []string
	for i, j := 0, 0; i < len(was) || j < len(is); {
		switch {
		case i < len(was) && j < len(is) && was[i] == is[j]:
			all = append(all, "  "+was[i])
			i, j = i+1, j+1
		case j == len(is) || i < len(was) && common[i+1][j] >= common[i][j+1]:
			all = append(all, "- "+was[i])
			i++
		default:
			all = append(all, "+ "+is[j])
			j++
		}
	}
	return strings.Join(nearChanges(all), "\n")
}

// commonLines tells how many lines was from i on and is from j on have in common, in the same order.
func commonLines(was, is []string) [][]int {
	common := make([][]int, len(was)+1)
	for i := range common {
		common[i] = make([]int, len(is)+1)
	}
	for i, before := range slices.Backward(was) {
		for j, now := range slices.Backward(is) {
			if before == now {
				common[i][j] = common[i+1][j+1] + 1
			} else {
				common[i][j] = max(common[i+1][j], common[i][j+1])
			}
		}
	}
	return common
}

// nearChanges leaves out what is far from every change.
func nearChanges(all []string) []string {
	near := make([]bool, len(all))
	for i, line := range all {
		if !strings.HasPrefix(line, "  ") {
			for n := max(0, i-around); n <= min(len(all)-1, i+around); n++ {
				near[n] = true
			}
		}
	}
	var kept []string
	for i, line := range all {
		switch {
		case near[i]:
			kept = append(kept, line)
		case i == 0 || near[i-1]:
			kept = append(kept, "  ...")
		}
	}
	return kept
}
