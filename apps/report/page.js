// Draws the page that the data is for.

const { page, data } = JSON.parse(document.getElementById("data").textContent);
document.title = "dunlin " + page;
({ routing: showRouting, kmers: showKmers, bench: showBench })[page](data);
