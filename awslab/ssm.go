package awslab

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The limits of SSM in the standard tier.
const (
	maxNames     = 10
	maxValue     = 4096
	maxName      = 1011
	maxLevels    = 15
	secureString = "SecureString"
)

// The tiers of parameters. The default tier is a setting of an account; here it is the standard tier.
const (
	standardTier    = "Standard"
	advancedTier    = "Advanced"
	intelligentTier = "Intelligent-Tiering"
	maxAdvanced     = 100_000
)

// parameter is a version of a parameter. Its value is kept in plain text because it must be returned.
type parameter struct {
	value, kind, tier string
	version           int64
	changed           time.Time
	tags              []tag
}

// parameterInput has the fields of all requests.
type parameterInput struct {
	Name, Value, Type, Tier, ResourceID string
	Names                               []string
	Overwrite, WithDecryption           bool
	Tags                                []tag
	Path, NextToken                     string
	MaxResults                          int
}

// parameterOutput is a parameter in a response.
type parameterOutput struct {
	Name, Type, Value string
	Selector          string `json:",omitempty"`
	Version           int64
	LastModifiedDate  float64
}

func (l *Lab) ssm(action string, in parameterInput) (any, error) {
	switch action {
	case "PutParameter":
		return l.putParameter(in)
	case "GetParameter":
		return l.getParameter(in)
	case "GetParameters":
		return l.getParameters(in)
	case "GetParametersByPath":
		return l.getParametersByPath(in)
	case "DeleteParameter":
		if _, there := l.parameters[in.Name]; !there {
			return nil, notFound(in.Name)
		}
		delete(l.parameters, in.Name)
		l.deleted[in.Name] = time.Now()
		return struct{}{}, nil
	case "ListTagsForResource":
		return struct{ TagList []tag }{l.latest(in.ResourceID).tags}, nil
	default:
		return nil, refuse("UnknownOperationException", "awslab does not implement the action "+action)
	}
}

func notFound(name string) error {
	return refuse("ParameterNotFound", "Parameter "+name+" not found.")
}

func (l *Lab) putParameter(in parameterInput) (any, error) {
	if err := checkParameter(in); err != nil {
		return nil, err
	}
	_, there := l.parameters[in.Name]
	found := l.latest(in.Name)
	taken := time.Since(l.deleted[in.Name]) < l.options.RecreateAfter
	switch {
	case there && !in.Overwrite, taken:
		return nil, refuse("ParameterAlreadyExists", "The parameter already exists. To overwrite this value, set the overwrite option in the request to true.")
	case !there && in.Type == "":
		return nil, refuse("ValidationException", "A parameter type is required when you create a parameter.")
	case !there:
		tier, err := l.tier(in.Tier)
		if err != nil {
			return nil, err
		}
		found = parameter{kind: in.Type, tier: tier, tags: in.Tags}
	}
	found.value, found.changed = in.Value, time.Now()
	found.version++
	l.parameters[in.Name] = append(l.parameters[in.Name], found)
	return struct {
		Version int64
		Tier    string
	}{found.version, found.tier}, nil
}

// tier returns the tier of a new parameter, or an error if its quota is exhausted.
func (l *Lab) tier(asked string) (string, error) {
	counts := map[string]int{}
	for name := range l.parameters {
		counts[l.latest(name).tier]++
	}
	tier, limit := standardTier, l.options.MaxParameters
	switch {
	case asked == advancedTier, asked == intelligentTier && counts[standardTier] >= limit:
		tier, limit = advancedTier, maxAdvanced
	case asked != "" && asked != standardTier && asked != intelligentTier:
		return "", refuse("ValidationException", "The tier must be Standard, Advanced or Intelligent-Tiering.")
	}
	if counts[tier] >= limit {
		return "", refuse("ParameterLimitExceeded", fmt.Sprintf("You have exceeded the number of parameters of the tier %s, %d.", tier, limit))
	}
	return tier, nil
}

// checkParameter checks the input of PutParameter.
func checkParameter(in parameterInput) error {
	wrong := func(text string) error { return refuse("ValidationException", text) }
	switch {
	case in.Overwrite && len(in.Tags) > 0:
		return wrong("Invalid request: tags and overwrite can't be used together. To create a parameter with tags, please remove overwrite flag.")
	case in.Value == "":
		return wrong("1 validation error detected: Value at 'value' failed to satisfy constraint: Member must have length greater than or equal to 1")
	case len(in.Value) > maxValue:
		return wrong(fmt.Sprintf("Standard tier parameters support a maximum parameter value of %d characters.", maxValue))
	case strings.Contains(in.Value, "{{"):
		return wrong("Parameter value can't nest another parameter.")
	case in.Type != "" && in.Type != "String" && in.Type != "StringList" && in.Type != secureString:
		return refuse("UnsupportedParameterType", "The parameter type isn't supported.")
	}
	return checkName(in.Name)
}

// checkName checks a parameter name by the rules in the documentation of PutParameter.
func checkName(name string) error {
	levels := strings.Split(strings.TrimPrefix(name, "/"), "/")
	first := strings.ToLower(levels[0])
	switch {
	case !regexp.MustCompile(`^[a-zA-Z0-9_./-]+$`).MatchString(name), strings.Contains(name, "//"), strings.HasSuffix(name, "/"):
		return refuse("ValidationException", "Parameter name: can't be empty; only a mix of letters, numbers and the following 3 symbols .-_ and / between levels.")
	case strings.Contains(name, "/") && !strings.HasPrefix(name, "/"):
		return refuse("ValidationException", "Parameter name must be a fully qualified name.")
	case strings.HasPrefix(first, "aws") || strings.HasPrefix(first, "ssm"):
		return refuse("ValidationException", `Parameter name: can't be prefixed with "aws" or "ssm" (case-insensitive).`)
	case len(name) > maxName:
		return refuse("ValidationException", "Parameter name is too long.")
	case len(levels) > maxLevels:
		return refuse("HierarchyLevelLimitExceededException", fmt.Sprintf("A hierarchy can have a maximum of %d levels.", maxLevels))
	}
	return nil
}

// latest returns the latest version of a parameter, or the zero value.
func (l *Lab) latest(name string) parameter {
	versions := l.parameters[name]
	if len(versions) == 0 {
		return parameter{}
	}
	return versions[len(versions)-1]
}

// read returns a parameter. Without decryption, the value of a SecureString is not readable. The name may end with a colon and a version.
func (l *Lab) read(name string, decrypt bool) (parameterOutput, bool) { //nolint:revive // as in the request
	name, selected, selects := strings.Cut(name, ":")
	found := l.latest(name)
	if selects {
		at, _ := strconv.Atoi(selected)
		if at < 1 || at > len(l.parameters[name]) {
			return parameterOutput{}, false
		}
		found, selected = l.parameters[name][at-1], ":"+selected
	}
	if found.version == 0 {
		return parameterOutput{}, false
	}
	value := found.value
	if found.kind == secureString && !decrypt {
		value = "AQICAHencrypted"
	}
	return parameterOutput{
		Name: name, Type: found.kind, Value: value, Selector: selected, Version: found.version, LastModifiedDate: float64(found.changed.UnixMilli()) / 1000,
	}, true
}

func (l *Lab) getParameter(in parameterInput) (any, error) {
	found, there := l.read(in.Name, in.WithDecryption)
	if !there {
		return nil, notFound(in.Name)
	}
	return struct{ Parameter parameterOutput }{found}, nil
}

func (l *Lab) getParameters(in parameterInput) (any, error) {
	if len(in.Names) == 0 || len(in.Names) > maxNames {
		return nil, refuse("ValidationException", fmt.Sprintf("1 validation error detected: Value at 'names' failed to satisfy constraint: "+
			"Member must have length less than or equal to %d and greater than or equal to 1", maxNames))
	}
	answer := struct {
		Parameters        []parameterOutput
		InvalidParameters []string
	}{}
	for _, name := range in.Names {
		if found, there := l.read(name, in.WithDecryption); there {
			answer.Parameters = append(answer.Parameters, found)
		} else {
			answer.InvalidParameters = append(answer.InvalidParameters, name)
		}
	}
	return answer, nil
}

// getParametersByPath returns a page of the parameters below a path, at all levels. The token of the next page is its first name.
func (l *Lab) getParametersByPath(in parameterInput) (any, error) {
	size := cmp.Or(in.MaxResults, maxNames)
	if !strings.HasPrefix(in.Path, "/") || size < 1 || size > maxNames {
		return nil, refuse("ValidationException", fmt.Sprintf("The parameter path must begin with a slash, and MaxResults must be from 1 to %d.", maxNames))
	}
	folder := strings.TrimSuffix(in.Path, "/") + "/"
	answer := struct {
		Parameters []parameterOutput
		NextToken  string `json:",omitempty"`
	}{}
	for _, name := range slices.Sorted(maps.Keys(l.parameters)) {
		if !strings.HasPrefix(name, folder) || name < in.NextToken {
			continue
		}
		if len(answer.Parameters) == size {
			answer.NextToken = name
			break
		}
		found, _ := l.read(name, in.WithDecryption)
		answer.Parameters = append(answer.Parameters, found)
	}
	return answer, nil
}
