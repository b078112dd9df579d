const answer = await fetch("http://127.0.0.1:8080/v1/completions", {
  method: "POST",
  headers: {"Content-Type": "application/json"},
  body: JSON.stringify({model: "stories260K", prompt: "Once upon a time", max_tokens: 30, temperature: 0}),
});
console.log((await answer.json()).choices[0].text);
