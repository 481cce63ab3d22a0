package selected

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/einmal-operators/einmal/internal/core/selection"
)

// news reports whether a text is to be logged: it is not "" and differs from the last one about the same subject.
func (c *Chooser) news(about, text string) bool {
	before := c.reported[about]
	if text == "" {
		delete(c.reported, about)
		return false
	}
	c.reported[about] = text
	return text != before
}

// tellFailure tells that discovery fails, when it begins to and when it has ended.
func (c *Chooser) tellFailure(err error) {
	log, failed := c.options.Settings.Log, c.reported["discovery"] != ""
	switch {
	case err != nil && c.news("discovery", err.Error()):
		log.Warn("discovery failed, using the last known kinds", "error", err)
	case err == nil && failed:
		c.news("discovery", "")
		log.Info("discovery succeeded again")
	}
}

func (c *Chooser) tellUnknown(groupVersions []string) {
	if c.news("unknown", strings.Join(groupVersions, ", ")) {
		c.options.Settings.Log.Warn("discovery failed for some API groups (aggregated API unavailable), using the last known kinds",
			"groupVersions", groupVersions)
	}
}

// tellLeft tells of kinds that are chosen and served otherwise.
func (c *Chooser) tellLeft(left []selection.Left) {
	now := map[string]bool{}
	for _, one := range left {
		about := fmt.Sprintf("left %d %s", one.By, one.Resource)
		now[about] = true
		log := c.options.Settings.Log.With("kind", one.Kind, "apiVersion", one.APIVersion(), "selector", c.options.Selections[one.By].Of.String())
		switch {
		case !c.news(about, "left for "+one.Other):
		case one.Other == "":
			log.Warn("kind has its own For registration, ForEvery skips it")
		default:
			log.Warn("kind is served in another version for an earlier ForEvery, this ForEvery skips it", "served", one.Other)
		}
	}
	maps.DeleteFunc(c.reported, func(about, _ string) bool { return strings.HasPrefix(about, "left ") && !now[about] })
}

// tellChoices tells what selections choose that is no plain kind, and returns what keeps the operator from being ready.
func (c *Chooser) tellChoices(made selection.Assignment) []error {
	var trouble []error
	for by, choice := range made.Choices {
		of, name := c.options.Selections[by].Of, fmt.Sprint(" of ", by)
		log := c.options.Settings.Log.With("selector", of.String())
		missing := of.Trouble(choice)
		if missing != "" {
			trouble = append(trouble, errors.New(missing))
		}
		if c.news("trouble"+name, missing) {
			log.Warn("ForEvery serves no kind", "reason", missing)
		}
		if of.Named() {
			continue
		}
		if c.news("unwatched"+name, selection.Names(choice.Unwatched)) {
			log.Info("ForEvery skips kinds that do not support list and watch", "kinds", selection.Names(choice.Unwatched))
		}
		if c.news("unwritten"+name, selection.Names(choice.Unwritten)) {
			log.Warn("ForEvery skips kinds that do not support patch, which its handlers need", "kinds", selection.Names(choice.Unwritten))
		}
		none := ""
		if len(choice.Kinds) == 0 {
			none = "none"
		}
		if c.news("none"+name, none) {
			log.Info("ForEvery matches no kinds yet, waiting for them")
		}
	}
	return trouble
}
