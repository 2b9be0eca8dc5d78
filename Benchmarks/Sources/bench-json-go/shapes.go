package main

type user struct {
	ID        int     `json:"id"`
	Login     string  `json:"login"`
	Name      string  `json:"name"`
	Email     string  `json:"email"`
	AvatarURL string  `json:"avatar_url"`
	Followers int     `json:"followers"`
	SiteAdmin bool    `json:"site_admin"`
	Score     float64 `json:"score"`
}

type owner struct {
	Login     string `json:"login"`
	ID        int    `json:"id"`
	AvatarURL string `json:"avatar_url"`
	Type      string `json:"type"`
}

type license struct {
	Key  string `json:"key"`
	Name string `json:"name"`
}

type repository struct {
	ID            int      `json:"id"`
	Name          string   `json:"name"`
	FullName      string   `json:"full_name"`
	Private       bool     `json:"private"`
	Owner         owner    `json:"owner"`
	HTMLURL       string   `json:"html_url"`
	Description   string   `json:"description"`
	Fork          bool     `json:"fork"`
	CreatedAt     string   `json:"created_at"`
	PushedAt      string   `json:"pushed_at"`
	Homepage      *string  `json:"homepage,omitempty"`
	Size          int      `json:"size"`
	Stargazers    int      `json:"stargazers_count"`
	Watchers      int      `json:"watchers_count"`
	Language      *string  `json:"language,omitempty"`
	Forks         int      `json:"forks_count"`
	OpenIssues    int      `json:"open_issues_count"`
	DefaultBranch string   `json:"default_branch"`
	Topics        []string `json:"topics"`
	License       *license `json:"license,omitempty"`
	Score         float64  `json:"score"`
}

type article struct {
	ID     int      `json:"id"`
	Title  string   `json:"title"`
	Author string   `json:"author"`
	Body   string   `json:"body"`
	Tags   []string `json:"tags"`
}

type sparse struct {
	ID     int      `json:"id"`
	Text1  *string  `json:"text1,omitempty"`
	Text2  *string  `json:"text2,omitempty"`
	Text3  *string  `json:"text3,omitempty"`
	Text4  *string  `json:"text4,omitempty"`
	Text5  *string  `json:"text5,omitempty"`
	Text6  *string  `json:"text6,omitempty"`
	Count1 *int     `json:"count1,omitempty"`
	Count2 *int     `json:"count2,omitempty"`
	Count3 *int     `json:"count3,omitempty"`
	Count4 *int     `json:"count4,omitempty"`
	Count5 *int     `json:"count5,omitempty"`
	Count6 *int     `json:"count6,omitempty"`
	Ratio1 *float64 `json:"ratio1,omitempty"`
	Ratio2 *float64 `json:"ratio2,omitempty"`
	Ratio3 *float64 `json:"ratio3,omitempty"`
	Ratio4 *float64 `json:"ratio4,omitempty"`
	Ratio5 *float64 `json:"ratio5,omitempty"`
	Ratio6 *float64 `json:"ratio6,omitempty"`
	Flag1  *bool    `json:"flag1,omitempty"`
	Flag2  *bool    `json:"flag2,omitempty"`
	Flag3  *bool    `json:"flag3,omitempty"`
	Flag4  *bool    `json:"flag4,omitempty"`
	Flag5  *bool    `json:"flag5,omitempty"`
	Flag6  *bool    `json:"flag6,omitempty"`
}
