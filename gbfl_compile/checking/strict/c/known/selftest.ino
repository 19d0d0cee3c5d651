// Runs the rows that came with the model and says whether this board answers them rightly.
#include <@NAME@.h>

void setup() {
  Serial.begin(115200);
  while (!Serial) {
  }
  const int wrong = @NAME@_selftest();
  if (wrong == 0) {
    Serial.println("@NAME@: every answer is right");
  } else {
    Serial.print("@NAME@: wrong on row ");
    Serial.println(wrong);
  }
  Serial.println(@NAME@_digest());
}

void loop() {}
