package object

import "encoding/base64"

// FoldStringData gives a Secret the form in which the API server keeps it: what stringData says goes to data.
func FoldStringData(secret Body) Body {
	plain, found := Get(secret, "stringData")
	if !found {
		return secret
	}
	texts, _ := plain.(Body)
	for key, value := range texts {
		if text, isText := value.(string); isText {
			secret = With(secret, Path{"data", key}, base64.StdEncoding.EncodeToString([]byte(text)))
		}
	}
	return Without(secret, Path{"stringData"})
}
