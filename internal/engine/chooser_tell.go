package engine

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/einmal-operators/einmal/internal/core/selection"
)

// news tells whether something is to be told: it is not "", and was not told in these words last time.
func (c *chooser) news(about, text string) bool {
	before := c.told[about]
	if text == "" {
		delete(c.told, about)
		return false
	}
	c.told[about] = text
	return text != before
}

// tellFailure tells that discovery fails, when it begins to and when it has ended.
func (c *chooser) tellFailure(err error) {
	log, failed := c.operator.Settings.Log, c.told["discovery"] != ""
	switch {
	case err != nil && c.news("discovery", err.Error()):
		log.Warn("discovery fails: what is served goes on, and nothing else is served until it succeeds", "error", err)
	case err == nil && failed:
		c.news("discovery", "")
		log.Info("discovery succeeds again")
	}
}

func (c *chooser) tellUnknown(groupVersions []string) {
	if c.news("unknown", strings.Join(groupVersions, ", ")) {
		c.operator.Settings.Log.Warn("what some groups serve is not known now, since another server has to be asked for it: what was known goes on",
			"groupVersions", groupVersions)
	}
}

// tellLeft tells of kinds that are chosen and served otherwise.
func (c *chooser) tellLeft(left []selection.Left) {
	now := map[string]bool{}
	for _, one := range left {
		about := fmt.Sprintf("left %d %s", one.By, one.Resource)
		now[about] = true
		log := c.operator.Settings.Log.With("kind", one.Kind, "apiVersion", one.APIVersion(), "chosen", c.operator.Selections[one.By].Of.String())
		switch {
		case !c.news(about, "left for "+one.Other):
		case one.Other == "":
			log.Warn("the kind is declared with For, which alone handles it: the handlers of ForEvery leave it out")
		default:
			log.Warn("the kind is served in another version for a ForEvery that was declared before: this one leaves it out", "served", one.Other)
		}
	}
	maps.DeleteFunc(c.told, func(about, _ string) bool { return strings.HasPrefix(about, "left ") && !now[about] })
}

// tellChoices tells what selections choose that is no plain kind, and returns what keeps the operator from being ready.
func (c *chooser) tellChoices(made selection.Assignment) []error {
	var trouble []error
	for by, choice := range made.Choices {
		of, name := c.operator.Selections[by].Of, fmt.Sprint(" of ", by)
		log := c.operator.Settings.Log.With("chosen", of.String())
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
			log.Info("ForEvery leaves out kinds that cannot be listed and watched", "kinds", selection.Names(choice.Unwatched))
		}
		if c.news("unwritten"+name, selection.Names(choice.Unwritten)) {
			log.Warn("ForEvery leaves out kinds whose objects cannot be patched, which its handlers need", "kinds", selection.Names(choice.Unwritten))
		}
		none := ""
		if len(choice.Kinds) == 0 {
			none = "none"
		}
		if c.news("none"+name, none) {
			log.Info("ForEvery has no kinds now: they are served when they appear")
		}
	}
	return trouble
}
