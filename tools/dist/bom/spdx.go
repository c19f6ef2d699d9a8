package bom

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Product is what a bill of materials is of.
type Product struct {
	Name, Version, SPDX, Home string
	Commit                    string
	File                      string // the name of the library
	Data                      []byte // its content
	Made                      time.Time
}

// The parts of SPDX 2.3 that are used here.
type (
	document struct {
		Version       string         `json:"spdxVersion"`
		DataLicense   string         `json:"dataLicense"`
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Creation      creation       `json:"creationInfo"`
		Packages      []spdxPackage  `json:"packages"`
		Files         []spdxFile     `json:"files"`
		Relationships []relationship `json:"relationships"`
	}
	creation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID            string     `json:"SPDXID"`
		Name          string     `json:"name"`
		Version       string     `json:"versionInfo"`
		Download      string     `json:"downloadLocation"`
		FilesAnalyzed bool       `json:"filesAnalyzed"`
		Purpose       string     `json:"primaryPackagePurpose"`
		Concluded     string     `json:"licenseConcluded"`
		Declared      string     `json:"licenseDeclared"`
		Copyright     string     `json:"copyrightText"`
		Comment       string     `json:"comment,omitempty"`
		Refs          []external `json:"externalRefs,omitempty"`
	}
	external struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxFile struct {
		ID        string     `json:"SPDXID"`
		Name      string     `json:"fileName"`
		Types     []string   `json:"fileTypes"`
		Checksums []checksum `json:"checksums"`
		Concluded string     `json:"licenseConcluded"`
		Copyright string     `json:"copyrightText"`
	}
	checksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	relationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const (
	documentID = "SPDXRef-DOCUMENT"
	productID  = "SPDXRef-Package-liba3s"
	fileID     = "SPDXRef-File-liba3s"
	noClaim    = "NOASSERTION"
)

// SPDX is the bill of materials of the library as an SPDX 2.3 document: the same parts give
// the same bytes.
func SPDX(p Product, parts []Licence) ([]byte, error) {
	sum := fmt.Sprintf("%x", sha256.Sum256(p.Data))
	sha1 := fmt.Sprintf("%x", sha1.Sum(p.Data)) // the format demands it
	expressions := []string{p.SPDX}
	for _, l := range parts {
		expressions = append(expressions, l.SPDX)
	}
	doc := document{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: documentID,
		Name:      p.Name + "-" + p.Version,
		Namespace: p.Home + "/spdx/" + p.Version + "/" + sum,
		Creation:  creation{p.Made.UTC().Format(time.RFC3339), []string{"Tool: liba3s-dist-" + p.Version}},
		Packages: []spdxPackage{{
			ID: productID, Name: p.Name, Version: p.Version, Download: "git+" + p.Home + "@" + p.Commit, Purpose: "LIBRARY",
			Concluded: conjunction(expressions), Declared: p.SPDX, Copyright: noClaim,
			Refs: []external{{"PACKAGE-MANAGER", "purl", purl(strings.TrimPrefix(p.Home, "https://"), "v"+p.Version)}},
		}},
		Files: []spdxFile{{
			ID: fileID, Name: "./" + p.File, Types: []string{"BINARY"}, Checksums: []checksum{{"SHA1", sha1}, {"SHA256", sum}},
			Concluded: noClaim, Copyright: noClaim,
		}},
		Relationships: []relationship{{documentID, "DESCRIBES", productID}, {productID, "GENERATES", fileID}},
	}
	for _, l := range parts {
		part := spdxPackage{
			ID: "SPDXRef-Package-" + identifier(l.Path) + "-" + identifier(l.Version), Name: l.Path, Version: l.Version,
			Download: noClaim, Purpose: "LIBRARY", Concluded: l.SPDX, Declared: l.SPDX, Copyright: noClaim,
			Refs: []external{{"PACKAGE-MANAGER", "purl", purl(l.Path, l.Version)}},
		}
		if l.Sum != "" {
			part.Comment = "Content as in go.sum: " + l.Sum
		}
		doc.Packages = append(doc.Packages, part)
		doc.Relationships = append(doc.Relationships, relationship{productID, "DEPENDS_ON", part.ID}, relationship{fileID, "STATIC_LINK", part.ID})
	}
	text, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(text, '\n'), nil
}

// conjunction joins licences that all hold, each named once, in the order they come in.
func conjunction(expressions []string) string {
	var all []string
	seen := map[string]bool{}
	for _, e := range expressions {
		for _, name := range strings.Split(e, " AND ") {
			if !seen[name] {
				seen[name] = true
				all = append(all, name)
			}
		}
	}
	return strings.Join(all, " AND ")
}

var noIdentifier = regexp.MustCompile(`[^A-Za-z0-9.-]`)

// identifier makes a name into one that SPDX allows.
func identifier(name string) string { return noIdentifier.ReplaceAllString(name, "-") }

// purl is a package URL of a Go module.
func purl(path, version string) string {
	return fmt.Sprintf("pkg:golang/%s@%s", path, strings.ReplaceAll(version, "+", "%2B"))
}
