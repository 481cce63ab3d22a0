package report

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// The measures of the picture, in pixels.
const (
	barHeight   = 18
	barGap      = 4
	groupGap    = 22
	labelWidth  = 190
	barWidth    = 420
	pictureEdge = 16
)

// Draw writes an SVG: for each operation, the CPU time of each subject for one object, and how it compares with the subject of a name.
func (r Report) Draw(to io.Writer, name string) error {
	most := 0.0
	for _, one := range operations() {
		for _, subject := range r.Subjects {
			most = max(most, subject.of(func(r Round) float64 { return one.of(r).CPU }).Median)
		}
	}
	var bars strings.Builder
	y := pictureEdge
	for _, one := range operations() {
		y += groupGap
		fmt.Fprintf(&bars, `<text x="%d" y="%d" font-weight="bold">%s one object: CPU time</text>`+"\n", pictureEdge, y-barGap*2, one.name)
		for _, subject := range r.Subjects {
			figure := func(r Round) float64 { return one.of(r).CPU }
			median := subject.of(figure).Median
			fmt.Fprintf(&bars, `<text x="%d" y="%d">%s</text>`, pictureEdge, y+barHeight-barGap, html.EscapeString(subject.Name))
			fmt.Fprintf(&bars, `<rect x="%d" y="%d" width="%.0f" height="%d" fill="%s"/>`, labelWidth, y, barWidth*median/most, barHeight, color(subject.Name))
			fmt.Fprintf(&bars, `<text x="%.0f" y="%d">%.0f µs %s</text>`+"\n", labelWidth+barWidth*median/most+barGap, y+barHeight-barGap, median,
				times(r.ratio(subject, figure, name)))
			y += barHeight + barGap
		}
	}
	_, err := fmt.Fprintf(to, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n"+
		`<rect width="100%%" height="100%%" fill="white"/>`+"\n%s</svg>\n", labelWidth+barWidth+150, y+pictureEdge, bars.String())
	return err
}

func times(ratio string) string {
	if ratio == "" {
		return ""
	}
	return "(×" + ratio + ")"
}

// color tells the subjects apart that are Einmal.
func color(subject string) string {
	if strings.HasPrefix(subject, "einmal") {
		return "#3b6ea5"
	}
	return "#a9b4be"
}
