package report

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// Table has the figures of one question, measured once for each subject.
type Table struct {
	Title   string   `json:"title"`
	Machine Machine  `json:"machine"`
	Columns []Column `json:"columns"`
}

// Column has the figures of one subject.
type Column struct {
	Subject string   `json:"subject"`
	Figures []Figure `json:"figures"`
}

// Figure is a number. The name says its unit.
type Figure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// of returns the figure with a name.
func (c Column) of(name string) float64 {
	for _, figure := range c.Figures {
		if figure.Name == name {
			return figure.Value
		}
	}
	return 0
}

// Print writes a line for each figure. Ratios are to the subject with a name, if it was measured.
func (t Table) Print(to io.Writer, name string) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(table, "%s\t", t.Title)
	reference := Column{}
	for _, column := range t.Columns {
		_, _ = fmt.Fprintf(table, "%s\tratio\t", column.Subject)
		if column.Subject == name {
			reference = column
		}
	}
	_, _ = fmt.Fprintln(table)
	if len(t.Columns) == 0 {
		return table.Flush()
	}
	for _, figure := range t.Columns[0].Figures {
		_, _ = fmt.Fprintf(table, "%s\t", figure.Name)
		for _, column := range t.Columns {
			ratio := ""
			if all := reference.of(figure.Name); all != 0 {
				ratio = fmt.Sprintf("%.2f", column.of(figure.Name)/all)
			}
			_, _ = fmt.Fprintf(table, "%.4g\t%s\t", column.of(figure.Name), ratio)
		}
		_, _ = fmt.Fprintln(table)
	}
	return table.Flush()
}

// WriteJSON writes the whole table.
func (t Table) WriteJSON(to io.Writer) error {
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(t)
}
