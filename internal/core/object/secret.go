package object

import "encoding/base64"

// FoldStringData returns a Secret as the API server stores it: with the values of stringData moved into data.
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
